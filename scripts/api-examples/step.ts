/**
 * A step of the examples: a line of a program that uses the client, and what later steps need of its result. The line is checked by the compiler, run
 * against a server, and printed as it stands here; the operation that it is an example of is the one whose request it sends.
 */
import type { AccountClient, SignalboxClient } from "@signalbox/client";

/** What a line may use. Ids are those of the steps before. */
export interface Scope {
  readonly client: SignalboxClient;
  /** The account `default`. */
  readonly account: AccountClient;
  readonly tokenId: string;
  readonly callId: string;
  readonly keyId: string;
  readonly accountKeyId: string;
  readonly providerId: string;
  readonly routeId: string;
  readonly versionId: string;
  readonly alertId: string;
  readonly deliveryId: string;
  readonly lateDeliveryId: string;
  readonly eventId: string;
  readonly waitingEventId: string;
  readonly replayId: string;
  readonly issueId: string;
  readonly jobId: string;
  readonly turnId: string;
  readonly itemId: string;
  readonly deadLetterId: string;
  readonly scheduleId: string;
}

export type Ids = Omit<Scope, "client" | "account">;

type Line = (scope: Scope) => unknown;

export interface Step {
  readonly line: Line;
  readonly remember: ((result: never) => Partial<Ids> | Promise<Partial<Ids>>) | null;
  /** Why a server that is alone refuses the request, and the status. */
  readonly refused: { readonly status: number; readonly because: string } | null;
}

export function step<Result = never>(
  line: Line,
  remember: ((result: Result) => Partial<Ids>) | null = null,
): Step {
  return { line, remember, refused: null };
}

export function refused(status: number, because: string, line: Line): Step {
  return { line, remember: null, refused: { status, because } };
}

/** The line as it stands in the source. */
export function textOf({ line }: Step): string {
  const [, text = ""] = /^(?:async )?\(\{[^}]*\}\) =>\s*([\s\S]*)$/.exec(line.toString()) ?? [];
  const lines = text.split("\n");
  const indents = lines.slice(1).map((one) => one.search(/\S/));
  const indent = Math.min(...indents.filter((width) => width >= 0));
  return lines.map((one, i) => (i === 0 ? one : one.slice(indent))).join("\n");
}
