/** What both threads know: the cells of the shared memory, and where the watching thread finds what it calls. */

/** Number of ticks of the main thread. */
export const TICKS = 0;
/** 1 while a debugger is attached. */
export const IS_DEBUGGED = 1;

/** Short enough for a block of 3 s to be seen, however the ticks lie; rare enough to cost nothing. */
export const TICK_MS = 250;
/** So many equal readings are a block: of 2 s. */
export const EQUAL_READINGS = 8;

/** A property of `globalThis` in the main thread. */
export const CALL = Symbol.for("signalbox.loop-watch");
