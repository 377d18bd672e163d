"use client";
/** The votes, live: rendered by the server first, then by the state of the agent. */
import { useAgent } from "@signalbox/client/react";
import type { Poll, PollState } from "../agents";

interface LivePollProps {
  /** Address of Signalbox, as the browser reaches it. */
  readonly url: string;
  readonly initial: PollState;
}

export function LivePoll({ url, initial }: LivePollProps) {
  const { state, status, stub } = useAgent<Poll>({ url, agent: "Poll", name: "lunch" });
  const { votes } = state ?? initial;
  const all = Object.values(votes).reduce((sum, count) => sum + count, 0);
  return (
    <section aria-labelledby="poll">
      <header>
        <h1 id="poll">What is for lunch?</h1>
        <p role="status" data-status={status}>
          {status === "open" ? "live" : "connecting"}
        </p>
      </header>
      <ul>
        {Object.entries(votes).map(([option, count]) => (
          <li key={option}>
            <button disabled={status !== "open"} onClick={() => void stub.vote(option)}>
              {option}
            </button>
            <meter max={Math.max(all, 1)} value={count} aria-label={`Share of ${option}`} />
            <output aria-label={`Votes for ${option}`}>{count}</output>
          </li>
        ))}
      </ul>
    </section>
  );
}
