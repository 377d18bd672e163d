/** What a program gives to a loader: checked, and in the form in which it is sent to the process. */

export type ModuleKind = "js" | "cjs" | "text" | "data" | "json" | "wasm";

export interface CodeModule {
  readonly kind: ModuleKind;
  /** Text, or bytes for `data` and `wasm`; of `json` the text. */
  readonly content: string | ArrayBuffer;
}

export interface ProgramLimits {
  /** Processor time until the event loop of the program must come to rest. */
  readonly cpuMs: number | undefined;
  /** Requests of one call. */
  readonly subRequests: number | undefined;
}

export interface ProgramCode {
  readonly mainModule: string;
  readonly modules: readonly (readonly [name: string, module: CodeModule])[];
  readonly env: unknown;
  /** Undefined: the network as the worker has it; null: none. */
  readonly globalOutbound: unknown;
  readonly tails: readonly unknown[];
  readonly date: string;
  readonly flags: readonly string[];
  readonly limits: ProgramLimits;
}

/** Members that a module may have; exactly one of them says what it is. */
const KINDS: readonly ModuleKind[] = ["js", "cjs", "text", "data", "json", "wasm"];

export function parseCode(value: unknown): ProgramCode {
  const code = recordOf(value, "the code");
  const {
    compatibilityDate,
    mainModule,
    globalOutbound,
    tails = [],
    streamingTails = [],
    allowExperimental,
  } = code;
  const { compatibilityFlags = [], env = {} } = code;
  if (typeof compatibilityDate !== "string" || !/^\d{4}-\d{2}-\d{2}$/.test(compatibilityDate))
    throw new TypeError("a loaded program needs a compatibilityDate such as 2026-10-01");
  if (typeof mainModule !== "string")
    throw new TypeError("a loaded program needs the name of its mainModule");
  const modules = Object.entries(recordOf(code["modules"], "modules")).map(
    ([name, module]) => [name, parseModule(name, module)] as const,
  );
  const main = modules.find(([name]) => name === mainModule)?.[1];
  if (main === undefined) throw new TypeError(`the mainModule "${mainModule}" is not among the modules`);
  if (main.kind !== "js")
    throw new TypeError(`the mainModule "${mainModule}" must be an ES module, not ${main.kind}`);
  if (!Array.isArray(compatibilityFlags) || !Array.isArray(tails) || !Array.isArray(streamingTails))
    throw new TypeError("compatibilityFlags, tails and streamingTails are lists");
  if (streamingTails.length > 0)
    throw new TypeError("streamingTails are not available on Signalbox: use tails");
  if (allowExperimental === true)
    throw new TypeError(
      "allowExperimental is not available on Signalbox: there are no experimental features",
    );
  return {
    mainModule,
    modules,
    env,
    globalOutbound,
    tails,
    date: compatibilityDate,
    flags: compatibilityFlags.map(String),
    limits: parseLimits(code["limits"]),
  };
}

export function parseLimits(value: unknown): ProgramLimits {
  const { cpuMs, subRequests } = value === undefined || value === null ? {} : recordOf(value, "limits");
  return { cpuMs: positive(cpuMs, "cpuMs"), subRequests: positive(subRequests, "subRequests") };
}

function positive(value: unknown, name: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !(value > 0)) throw new TypeError(`limits.${name} is a number above zero`);
  return value;
}

/** A text is a module of the kind that its name ends with. */
function parseModule(name: string, value: unknown): CodeModule {
  if (typeof value === "string") {
    if (name.endsWith(".py")) throw noPython(name);
    if (!/\.[cm]?js$/.test(name))
      throw new TypeError(
        `the module "${name}" is a text: its name must end with .js, or it must be { text }, { json } or another kind`,
      );
    return { kind: name.endsWith(".cjs") ? "cjs" : "js", content: value };
  }
  const given = recordOf(value, `the module "${name}"`);
  if (given["py"] !== undefined) throw noPython(name);
  const kinds = KINDS.filter((kind) => given[kind] !== undefined);
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1)
    throw new TypeError(`the module "${name}" must have exactly one of ${KINDS.join(", ")}`);
  const content = given[kind];
  if (kind === "json") return { kind, content: JSON.stringify(content) };
  if (kind === "data" || kind === "wasm") return { kind, content: bytesOf(content, name) };
  if (typeof content !== "string") throw new TypeError(`the module "${name}" must be a text`);
  return { kind, content };
}

function noPython(name: string): Error {
  return new TypeError(`the module "${name}" is Python, which is not available on Signalbox`);
}

function bytesOf(value: unknown, name: string): ArrayBuffer {
  if (value instanceof ArrayBuffer) return value;
  if (ArrayBuffer.isView(value))
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice().buffer;
  throw new TypeError(`the module "${name}" must be an ArrayBuffer`);
}

function recordOf(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null)
    throw new TypeError(`${what} of a loaded program must be an object`);
  return value as Record<string, unknown>;
}
