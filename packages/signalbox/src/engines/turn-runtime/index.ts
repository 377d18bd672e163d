export { currentTurn, runOutsideTurns } from "./current-turn.ts";
export { Mailbox } from "./mailbox.ts";
export { OutputGate } from "./output-gate.ts";
export { type Participant, Transactions } from "./transactions.ts";
export type { CallParts, Turn, TurnKind, TurnOwner, TurnSpec } from "./turn.ts";
