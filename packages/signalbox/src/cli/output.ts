/**
 * Standard output of a command. If its reader is gone (`| head`), the next write throws `OutputClosedError`, so that a command that prints without
 * an end stops; the command line then ends without a message. `serve` and `dev` never write after their start through it.
 */
import type { Output } from "./command.ts";

/** The reader of the output is gone, or its disk is full. */
export class OutputClosedError extends Error {
  override readonly name = "OutputClosedError";
  /** False if the output is lost, e.g. on a full disk. */
  readonly isExpected: boolean;
  constructor(
    cause: NodeJS.ErrnoException,
    isExpected = cause.code === "EPIPE" || cause.code === "ERR_STREAM_DESTROYED",
  ) {
    super(`cannot write the output: ${cause.message}`, { cause });
    this.isExpected = isExpected;
  }

  /** For a command whose output is useless unless it is complete. */
  asFailure(): OutputClosedError {
    return new OutputClosedError(this.cause as NodeJS.ErrnoException, false);
  }
}

export interface ProcessOutput extends Output {
  write(content: string | Uint8Array): unknown;
  /** Resolves when everything is written. Rejects with `OutputClosedError`. */
  flush(): Promise<void>;
}

export function openOutput(stream: NodeJS.WriteStream): ProcessOutput {
  let failure: OutputClosedError | undefined;
  const check = () => {
    if (failure !== undefined) throw failure;
  };
  stream.on("error", (error) => {
    failure ??= new OutputClosedError(error);
  });
  return {
    write(content) {
      check();
      return stream.write(content);
    },
    // A pipe fails after the write has returned.
    async flush() {
      await new Promise<void>((resolve) => stream.write("", () => resolve()));
      check();
    },
    isTTY: stream.isTTY,
    get columns() {
      return stream.columns;
    },
  };
}

export function isProcessOutput(out: Output): out is ProcessOutput {
  return "flush" in out;
}
