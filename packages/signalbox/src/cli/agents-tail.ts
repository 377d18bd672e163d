/** `signalbox agents tail`: prints the events of an instance, one per line, until the server or an interrupt ends the stream. */
import type { Activity } from "@signalbox/client";
import { plainLine } from "../core/plain-text.ts";
import type { Command } from "./command.ts";
import { INSTANCE_OPTIONS, INSTANCE_POSITIONALS, instanceOf } from "./instance-options.ts";
import { stopSignal } from "./stop-signal.ts";
import { toCell } from "./table.ts";

export const agentsTail: Command = {
  words: ["agents", "tail"],
  positionals: INSTANCE_POSITIONALS,
  summary: "Print the events of an instance as they occur, until interrupted.",
  options: INSTANCE_OPTIONS,
  async run(context) {
    const instance = await instanceOf(context);
    const signal = stopSignal();
    try {
      for await (const event of instance.follow({ signal })) {
        if ("missed" in event) context.err.write(`missed ${event.missed} events\n`);
        else context.out.write(`${context.isJson ? JSON.stringify(event) : toLine(event)}\n`);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  },
};

function toLine({ timestamp, type, detail }: Activity): string {
  const fields = Object.entries(detail).map(([key, value]) => `${key}=${toCell(value)}`);
  return plainLine(`${timestamp} ${type.padEnd(10)} ${fields.join(" ")}`);
}
