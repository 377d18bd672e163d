/**
 * The node that an instance without an owner belongs to. All nodes with the same list select the same one; when a node leaves, only its own instances
 * get another one.
 */
import { hash } from "node:crypto";

/** Null if there is no node. */
export function rendezvous(name: string, nodes: readonly string[]): string | null {
  let winner: string | null = null;
  let highest = "";
  for (const node of nodes) {
    const weight = hash("sha256", `${node}\0${name}`, "hex");
    if (winner !== null && weight <= highest) continue;
    winner = node;
    highest = weight;
  }
  return winner;
}
