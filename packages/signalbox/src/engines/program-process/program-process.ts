/**
 * A process that runs one source text with Node's permission model: no files, no child processes, no threads, no addons, an empty environment. It has a socket to this
 * process (descriptor 3) and one for questions (descriptor 4), and ends with it.
 *
 *   running ─ it exits, or `end` → over (`whenOver` resolves once)
 *
 * The limits hold without the help of the process: V8 limits its heap, the kernel its memory and its processor time. Where the kernel allows it, the process has no network
 * interfaces, and ends with this process even if it never looks at its socket; elsewhere only `confineProcess`, which runs in it, keeps it from the network, and only its
 * processor time ends it.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Duplex, Readable } from "node:stream";

interface ProcessLimits {
  /** Of the heap, and again of the buffers outside of it. */
  readonly memoryMb: number;
  /** Processor time of the whole life of the process. Ends also a process that no one watches any more. */
  readonly processorSeconds: number;
}

export interface ProcessEnd {
  readonly signal: NodeJS.Signals | null;
  /** The last lines of its standard error. */
  readonly errors: string;
}

/** Node maps more memory than it did when it was measured: another thread, code of the program's prelude. */
const BASE_MARGIN_MB = 64;
/** The kernel counts processor time in these units. */
const TICKS_PER_SECOND = 100;
/** Programs of util-linux that start another one: without network interfaces, and ended by the kernel together with this process. */
const WRAPPERS: readonly (readonly string[])[] = [
  ["/usr/bin/unshare", "--map-root-user", "--net"],
  ["/usr/bin/setpriv", "--pdeathsig", "KILL"],
];
const MAX_QUESTION_BYTES = 32 * 1024 * 1024;
/** Of what the process writes to its standard error, for the log. */
const MAX_ERROR_BYTES = 4096;

let usable: readonly string[] | undefined;
let measuredBaseMb: number | null | undefined;

export class ProgramProcess {
  /** To the process. Its `error` events are handled. */
  readonly socket: Duplex;
  readonly whenOver: Promise<ProcessEnd>;
  readonly #child: ChildProcess;

  constructor(source: string, limits: ProcessLimits) {
    const [command, ...args] = commandOf(limits);
    this.#child = spawn(command ?? "", args, {
      cwd: "/",
      env: {},
      stdio: ["pipe", "ignore", "pipe", "pipe", "pipe"],
    });
    const { stdin, stderr, stdio } = this.#child;
    this.socket = stdio[3] as Duplex;
    // A process that ends early closes them; `whenOver` reports it.
    for (const stream of [stdin, stderr, this.socket, stdio[4]]) stream?.on("error", () => undefined);
    const errors = lastOf(stderr);
    this.whenOver = new Promise((resolve) => {
      this.#child.once("error", ({ message }) => resolve({ signal: null, errors: message }));
      this.#child.once("close", (_code, signal) => resolve({ signal, errors: errors() }));
    });
    stdin?.end(source);
  }

  /** Answers the questions of the process, one after the other. Null: the message needs no answer. Nothing is read while a question is answered and its answer not taken. */
  answer(answerTo: (question: Buffer) => Promise<Uint8Array | null>): void {
    const channel = this.#child.stdio[4] as Duplex;
    const questions = new QuestionReader();
    let isAnswering = false;
    const write = async (bytes: Uint8Array) => {
      const head = Buffer.allocUnsafe(4);
      head.writeUInt32LE(bytes.length);
      if (!channel.write(Buffer.concat([head, bytes]))) await drained(channel);
    };
    const answerAll = async () => {
      for (let question = questions.take(); question !== null; question = questions.take()) {
        const bytes = await answerTo(question);
        if (bytes !== null) await write(bytes);
      }
    };
    channel.on("data", (chunk: Buffer) => {
      questions.add(chunk);
      // Chunks may still arrive after a pause.
      if (isAnswering) return;
      isAnswering = true;
      channel.pause();
      answerAll().then(
        () => {
          isAnswering = false;
          channel.resume();
        },
        () => this.end(),
      );
    });
  }

  /** Ends the process at once. */
  end(): void {
    this.#child.kill("SIGKILL");
  }

  /** Processor time that the process has used; null where the system does not tell. */
  get processorMs(): number | null {
    try {
      const fields =
        readFileSync(`/proc/${this.#child.pid}/stat`, "latin1").split(") ").at(-1)?.split(" ") ?? [];
      return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
    } catch {
      // Not Linux, or the process has just ended.
      return null;
    }
  }
}

/** Questions from chunks of any size. Their bytes are joined once, when a question is complete. */
class QuestionReader {
  #chunks: Buffer[] = [];
  #bytes = 0;

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  /** Null while the next one is incomplete. Throws if it is too long. */
  take(): Buffer | null {
    if (this.#bytes < 4) return null;
    if ((this.#chunks[0]?.length ?? 0) < 4) this.#join();
    const [first] = this.#chunks;
    const length = first?.readUInt32LE() ?? 0;
    if (length > MAX_QUESTION_BYTES) throw new RangeError(`a question of ${length} bytes`);
    const end = 4 + length;
    if (this.#bytes < end) return null;
    const whole = this.#join();
    this.#chunks = whole.length === end ? [] : [whole.subarray(end)];
    this.#bytes -= end;
    return whole.subarray(4, end);
  }

  #join(): Buffer {
    const whole = this.#chunks.length === 1 ? this.#chunks[0] : undefined;
    const joined = whole ?? Buffer.concat(this.#chunks, this.#bytes);
    this.#chunks = [joined];
    return joined;
  }
}

/** Resolves when the stream takes more, or will never do. */
async function drained(stream: Duplex): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  stream.once("drain", resolve);
  stream.once("close", resolve);
  if (!stream.destroyed) await promise;
  stream.off("drain", resolve);
  stream.off("close", resolve);
}

function commandOf({ memoryMb, processorSeconds }: ProcessLimits): string[] {
  const base = baseMb();
  const limits = [
    `ulimit -c 0`,
    ...(base === null ? [] : [`ulimit -d ${(base + BASE_MARGIN_MB + 2 * memoryMb) * 1024}`]),
    `ulimit -t ${processorSeconds}`,
  ];
  const node = [
    process.execPath,
    "--permission",
    "--disallow-code-generation-from-strings",
    "--no-addons",
    "--no-warnings",
    "--unhandled-rejections=warn",
    `--max-old-space-size=${memoryMb}`,
    "--input-type=module",
    "-",
  ];
  // A system that does not know a limit goes on without it.
  const shell = [
    "/bin/sh",
    "-c",
    `${limits.map((limit) => `${limit} 2>/dev/null;`).join(" ")} exec "$0" "$@"`,
    ...node,
  ];
  return [...wrappers(), ...shell];
}

/** Those that work here: containers often refuse the first one. */
function wrappers(): readonly string[] {
  usable ??= WRAPPERS.flatMap(([command = "", ...args]) =>
    spawnSync(command, [...args, "true"], { stdio: "ignore" }).status === 0 ? [command, ...args] : [],
  );
  return usable;
}

/**
 * Writable memory that Node has mapped before a program runs, most of it never used: stacks of threads, code, young generations. It counts for the kernel's limit. Measured once,
 * because it differs by processor and kernel: 330 MiB and 575 MiB were seen. Null where the system does not tell.
 */
function baseMb(): number | null {
  if (measuredBaseMb !== undefined) return measuredBaseMb;
  const { stdout } = spawnSync(
    process.execPath,
    ["--no-warnings", "-p", `require("fs").readFileSync("/proc/self/status", "latin1")`],
    { cwd: "/", env: {}, encoding: "latin1" },
  );
  const kilobytes = /^VmData:\s+(\d+) kB$/m.exec(stdout)?.[1];
  measuredBaseMb = kilobytes === undefined ? null : Math.ceil(Number(kilobytes) / 1024);
  return measuredBaseMb;
}

/** The last bytes of a stream, when it has ended. */
function lastOf(stream: Readable | null): () => string {
  let kept = Buffer.from("");
  stream?.on("data", (chunk: Buffer) => {
    kept = Buffer.concat([kept, chunk]).subarray(-MAX_ERROR_BYTES);
  });
  return () => kept.toString("utf8");
}
