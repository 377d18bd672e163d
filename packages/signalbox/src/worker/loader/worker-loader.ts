/** `env.<LOADER>`: loads programs at run time, and what a program gets of one of them. */
import {
  createStub,
  currentWork,
  endingWith,
  fetchFollowing,
  type ObjectClass,
  transferArguments,
} from "../../agents/calls.ts";
import { createLoadedClass } from "./loaded-class.ts";
import type { LoadedPrograms } from "./loaded-programs.ts";
import { parseCode, type ProgramCode } from "./program-code.ts";

type GetCode = () => unknown;

export interface EntrypointOptions {
  readonly props?: unknown;
  readonly limits?: unknown;
}

export class WorkerLoader {
  readonly #programs: LoadedPrograms;
  readonly #name: string;

  /** `name`: of the binding, among all of the server. */
  constructor(programs: LoadedPrograms, name: string) {
    this.#programs = programs;
    this.#name = name;
  }

  /** The program with this id. `getCode` is called when it does not run; without an id it is a program of its own. */
  get(id: string | null, getCode: GetCode): LoadedWorker {
    if (typeof getCode !== "function")
      throw new TypeError("the second argument of get() returns the code of the program");
    if (id !== null && typeof id !== "string")
      throw new TypeError("the id of a loaded program is a text, or null");
    const key = id === null ? this.#programs.nextKey(this.#name) : `${this.#name}\0=${id}`;
    return new LoadedWorker(this.#programs, key, async () => parseCode(await getCode()));
  }

  load(code: unknown): LoadedWorker {
    const parsed = parseCode(code);
    return new LoadedWorker(this.#programs, this.#programs.nextKey(this.#name), () =>
      Promise.resolve(parsed),
    );
  }
}

export class LoadedWorker {
  readonly #programs: LoadedPrograms;
  readonly #key: string;
  readonly #getCode: () => Promise<ProgramCode>;

  constructor(programs: LoadedPrograms, key: string, getCode: () => Promise<ProgramCode>) {
    this.#programs = programs;
    this.#key = key;
    this.#getCode = getCode;
  }

  /** A stub of an entrypoint; without a name of the default export. */
  getEntrypoint(name?: string | null, options: EntrypointOptions = {}): object {
    if (options.limits !== undefined)
      throw new TypeError(
        "limits of an entrypoint are not available on Signalbox: set limits of the program",
      );
    const { props = {} } = options;
    const entrypoint = entrypointOf(name);
    const send = async (path: readonly string[], args: readonly unknown[] | null) => {
      const caller = currentWork();
      const copies = args === null ? null : transferArguments(args, caller ?? null);
      // The object that calls stays in memory until it has the answer.
      const release = caller?.hold();
      try {
        return await endingWith(copies, () =>
          this.#programs.use(this.#key, this.#getCode, (program) =>
            program.run(entrypoint, props, path, copies),
          ),
        );
      } finally {
        release?.();
      }
    };
    const fetch = (input: string | URL | Request, init?: RequestInit) =>
      fetchFollowing(input, init, async (request) => (await send(["fetch"], [request])) as Response);
    return createStub({ send }, { isService: true, members: { fetch } });
  }

  /** A class of the program, for `ctx.facets.get(name, () => ({ class }))`. */
  getDurableObjectClass(name?: string | null, options: { readonly props?: unknown } = {}): ObjectClass {
    return createLoadedClass(entrypointOf(name), options.props, (work) =>
      this.#programs.use(this.#key, this.#getCode, work),
    );
  }
}

/** Null is the default export. */
function entrypointOf(name: string | null | undefined): string | null {
  return name === undefined || name === "default" ? null : name;
}
