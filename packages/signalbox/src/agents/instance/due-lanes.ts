/**
 * In which order due instances are read and woken, page by page, so that neither an agent nor an account waits for all the work of another.
 *
 *   a lane for each agent, in the order of time ──an account fills much of a page, or has no room──► a lane of its own for that account
 *
 * The lanes take turns, until none has due instances.
 *
 * Invariants:
 * 1. Every due instance is read: an account belongs to the common lane of an agent, or has a lane of its own that begins where the common one was.
 * 2. A lane without room waits with what it has read, while the others go on.
 * 3. While one lane has work, the others are read again every second: what becomes due meanwhile does not wait for that work.
 * 4. A lane reads each instance once: its position never goes back. (Thousands that have failed and are left alone would be read again and again.)
 */
import type { DueEntry, DuePosition, DueSelection } from "./instance-catalog.ts";

/** Due instances read in one query. */
export const PAGE = 100;
/** An account with so many of a page gets a lane of its own. */
const HEAVY = PAGE / 4;
/** Until a lane without work is read again. The common one passes over the work of all heavy accounts: some milliseconds for a hundred thousand instances. */
export const REST_MS = 1000;

export interface Lane extends DueSelection {
  /** Accounts with lanes of their own. */
  readonly without: Set<string>;
  /** The end of the last page. */
  after: DuePosition | undefined;
  /** What was read and not woken yet. */
  pending: readonly DueEntry[];
  /** There was nothing behind the last page. */
  isRead: boolean;
  isBlocked: boolean;
  restsUntil: number;
}

export class DueLanes {
  #lanes: Lane[] = [];
  readonly #now: () => number;

  constructor(agents: Iterable<string>, now: () => number) {
    this.#now = now;
    for (const agent of agents) this.#lanes.push(newLane(agent, null));
  }

  /** The lane whose turn it is; "blocked" if those with work wait for room; null when no lane has work. */
  next(): Lane | "blocked" | null {
    if (this.#lanes.every(isDone)) return null;
    const now = this.#now();
    const i = this.#lanes.findIndex(({ isBlocked, restsUntil }) => !isBlocked && restsUntil <= now);
    if (i === -1) return "blocked";
    const [lane] = this.#lanes.splice(i, 1) as [Lane];
    this.#lanes.push(lane);
    return lane;
  }

  /** There may be room again. */
  unblock(): void {
    for (const lane of this.#lanes) lane.isBlocked = false;
  }

  /** `selected`: those of the page that are to be woken. */
  read(lane: Lane, page: readonly DueEntry[], selected: readonly DueEntry[]): void {
    lane.after = page.at(-1) ?? lane.after;
    lane.pending = selected;
    lane.isRead = page.length < PAGE;
    if (lane.account === null && !lane.isRead)
      for (const account of heavyOf(page)) this.#split(lane, account, []);
  }

  /** So many of what was pending were woken; there is no room for the next one. */
  handled(lane: Lane, count: number): void {
    const rest = lane.pending.slice(count);
    const [refused] = rest;
    if (refused === undefined) {
      lane.pending = rest;
      if (lane.isRead) lane.restsUntil = this.#now() + REST_MS;
    } else if (lane.account !== null) {
      lane.pending = rest;
      lane.isBlocked = true;
      // It had no turn, and keeps its place: otherwise the lane before it would get every room that is made.
      if (count === 0) this.#lanes = [lane, ...this.#lanes.filter((other) => other !== lane)];
    } else {
      const { account } = refused;
      lane.pending = rest.filter((entry) => entry.account !== account);
      const own = rest.filter((entry) => entry.account === account);
      this.#split(lane, account, own).isBlocked = true;
    }
  }

  #split(common: Lane, account: string, pending: readonly DueEntry[]): Lane {
    const known = this.#lanes.find((one) => one.agent === common.agent && one.account === account);
    const lane = known ?? newLane(common.agent, account);
    if (known === undefined) {
      lane.after = common.after;
      common.without.add(account);
      this.#lanes.push(lane);
    }
    lane.pending = [...pending, ...lane.pending];
    lane.restsUntil = 0;
    return lane;
  }
}

function isDone({ isRead, pending }: Lane): boolean {
  return isRead && pending.length === 0;
}

function newLane(agent: string, account: string | null): Lane {
  return {
    agent,
    account,
    without: new Set(),
    after: undefined,
    pending: [],
    isRead: false,
    isBlocked: false,
    restsUntil: 0,
  };
}

function heavyOf(page: readonly DueEntry[]): string[] {
  const counts = new Map<string, number>();
  for (const { account } of page) counts.set(account, (counts.get(account) ?? 0) + 1);
  return [...counts].filter(([, count]) => count >= HEAVY).map(([account]) => account);
}
