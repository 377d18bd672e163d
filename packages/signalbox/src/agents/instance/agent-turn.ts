/** The turns of an instance: their kinds, which are labels of metrics and of the activity list, and what their functions receive. */
import type { TurnSpec } from "../../engines/turn-runtime/index.ts";
import type { AgentOrigin } from "../api/current-agent.ts";
import type { LiveAgent } from "./live-agent.ts";

export type TurnKind =
  | "start"
  | "request"
  | "connect"
  | "message"
  | "close"
  | "rpc"
  | "state"
  | "delivery"
  | "queue"
  | "schedule"
  | "alarm"
  | "hook"
  | "manage"
  /** Management reads something. It is no activity of the instance itself. */
  | "inspect";

export interface ResidentTurn<R, T> extends TurnSpec<R, T> {
  readonly kind: TurnKind;
  readonly origin?: AgentOrigin | undefined;
}

export type AgentTurn<T> = ResidentTurn<LiveAgent, T>;

/** Runs turns: an instance, as the functions see it that start turns. */
export interface TurnTarget {
  /** Resolves with the result when everything that the turn wrote and read is durable. */
  run<T>(turn: AgentTurn<T>): Promise<T>;
}
