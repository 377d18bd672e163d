/**
 * The loaded programs of a server: each id of a loader is a process at most, and there is a bounded number of processes.
 *
 * Invariants:
 * 1. At most `maxPrograms` processes run. A program that needs one more gets the place of the idle one that was used longest ago, or waits until one is idle.
 * 2. A process without a call, and without work that a call has left behind, ends after `idleMs`; its next call starts it again from its code. While something of it could still
 *    be used (a stub that was not disposed, an open WebSocket), it ends later; each use of it, also a piece of a body, begins the time anew.
 */
import { runOutsideTurns } from "../../engines/turn-runtime/index.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { bundleInside } from "./bundle-inside.ts";
import { LoadedProgram, type ProgramSettings } from "./loaded-program.ts";
import { type ProgramCode } from "./program-code.ts";

export interface ProgramsSettings extends ProgramSettings {
  readonly maxPrograms: number;
  readonly idleMs: number;
}

interface Entry {
  readonly key: string;
  readonly program: Promise<LoadedProgram>;
  started: LoadedProgram | null;
  /** Calls that hold the program, also before it has started. */
  uses: number;
  usedAt: number;
  /** What the program counted when it was looked at last. */
  seenUses: number;
}

/** Programs that may wait for a place, and for how long. */
const MAX_WAITING = 1000;
const MAX_WAIT_MS = 30_000;
const SWEEP_MS = 100;
/** A program of which something is in use may be idle so many times longer: programs rarely dispose stubs. */
const USED_FACTOR = 6;

export class LoadedPrograms {
  readonly #settings: ProgramsSettings;
  readonly #logger: Logger;
  readonly #entries = new Map<string, Entry>();
  readonly #waiting: (() => void)[] = [];
  /** Processes that run, or are about to start. */
  #places = 0;
  #sweep: NodeJS.Timeout | undefined;
  #anonymous = 0;

  constructor(settings: ProgramsSettings, logger: Logger) {
    this.#settings = settings;
    this.#logger = logger;
  }

  /** A key for a program without an id. */
  nextKey(loader: string): string {
    this.#anonymous += 1;
    return `${loader}\0${this.#anonymous}`;
  }

  /** Runs the function with the program of the key, which is started from `getCode` if it does not run. */
  async use<T>(
    key: string,
    getCode: () => Promise<ProgramCode>,
    work: (program: LoadedProgram) => Promise<T>,
  ): Promise<T> {
    let entry = this.#entries.get(key);
    if (entry === undefined || entry.started?.isOver === true) {
      entry = { key, program: this.#start(key, getCode), started: null, uses: 0, usedAt: 0, seenUses: 0 };
      this.#entries.set(key, entry);
      this.#follow(entry);
    }
    entry.uses += 1;
    try {
      return await work(await entry.program);
    } finally {
      entry.uses -= 1;
      entry.usedAt = Date.now();
      if (this.#waiting.length > 0) this.#makeRoom();
    }
  }

  close(): void {
    clearInterval(this.#sweep);
    for (const { started } of this.#entries.values()) started?.end(new Error("The server stops."));
  }

  async #start(key: string, getCode: () => Promise<ProgramCode>): Promise<LoadedProgram> {
    const code = await getCode();
    const source = await bundleInside();
    await this.#takePlace();
    try {
      // Its messages are no part of the caller's turn.
      return runOutsideTurns(() => {
        const program = new LoadedProgram(
          source,
          code,
          this.#settings,
          key.split("\0").join(" "),
          this.#logger,
        );
        void program.whenOver.then(() => this.#freePlace());
        return program;
      });
    } catch (error) {
      this.#freePlace();
      throw error;
    }
  }

  #follow(entry: Entry): void {
    const forget = () => {
      if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key);
    };
    entry.program.then((program) => {
      entry.started = program;
      entry.usedAt = Date.now();
      this.#sweep ??= setInterval(() => this.#endIdle(), SWEEP_MS).unref();
      void program.whenOver.then(forget);
    }, forget);
  }

  async #takePlace(): Promise<void> {
    if (this.#places < this.#settings.maxPrograms) {
      this.#places += 1;
      return;
    }
    if (this.#waiting.length >= MAX_WAITING) throw new Error("Too many loaded programs wait for a process.");
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    const timer = setTimeout(() => {
      const position = this.#waiting.indexOf(resolve);
      if (position === -1) return;
      this.#waiting.splice(position, 1);
      reject(
        new Error(`All ${this.#settings.maxPrograms} processes for loaded programs have been busy for 30 s.`),
      );
    }, MAX_WAIT_MS);
    this.#makeRoom();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** A place goes from a process that has ended to the first program that waits. */
  #freePlace(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#places -= 1;
    else next();
  }

  /** Ends the idle program that was used longest ago; one of which something is in use only after its time. */
  #makeRoom(): void {
    const isFree = (entry: Entry) =>
      isIdle(entry) && (isQuiet(entry) || Date.now() - entry.usedAt >= this.#settings.idleMs);
    const [oldest] = [...this.#entries.values()]
      .filter(isFree)
      .toSorted((a, b) => Number(isQuiet(b)) - Number(isQuiet(a)) || a.usedAt - b.usedAt);
    oldest?.started?.end(new Error("The loaded program was idle."));
  }

  #endIdle(): void {
    const { idleMs } = this.#settings;
    for (const entry of this.#entries.values()) {
      refresh(entry);
      const idleFor = Date.now() - entry.usedAt;
      if (isIdle(entry) && idleFor >= (isQuiet(entry) ? idleMs : idleMs * USED_FACTOR))
        entry.started?.end(new Error("The loaded program was idle."));
    }
    if (this.#waiting.length > 0) this.#makeRoom();
    if (this.#entries.size > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }
}

/** A body that is read and a WebSocket with frames are uses of the program, as calls are. */
function refresh(entry: Entry): void {
  const uses = entry.started?.uses ?? 0;
  if (uses === entry.seenUses) return;
  entry.seenUses = uses;
  entry.usedAt = Date.now();
}

function isQuiet({ started }: Entry): boolean {
  return started?.isQuiet === true;
}

function isIdle({ uses, started }: Entry): boolean {
  return uses === 0 && started !== null && !started.isOver && started.isIdle;
}
