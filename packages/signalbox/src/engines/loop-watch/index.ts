/** Notices that code blocks the event loop, while it does. `loop-watch.ts` is the interface. */
export { LoopWatch } from "./loop-watch.ts";
