import { Elapsed } from "../../components/elapsed.tsx";
import { count } from "../../format/number.ts";
import type { InstanceDetail } from "./agent.ts";

/** A turn that ends sooner needs no notice. */
const LONG_MS = 2000;

/** Shown while a turn runs for a while: what runs, since when, and what waits for it. */
export function BusyNotice({ instance }: { readonly instance: InstanceDetail }) {
  const { busy_since: since, turn, waiting_turns: waiting } = instance;
  if (since == null || Date.now() - Date.parse(since) < LONG_MS) return null;
  return (
    <div className="notice notice-warn" role="status" data-testid="busy">
      <p>
        <strong>
          Busy for <Elapsed since={since} />
        </strong>
        {turn != null && (
          <>
            : {turn.kind} {turn.label !== turn.kind && <code>{turn.label}</code>}
          </>
        )}
        .{waiting > 0 && ` ${count(waiting)} ${waiting === 1 ? "event waits" : "events wait"} for it.`}
      </p>
      <p className="small">The page shows what was stored before this turn.</p>
    </div>
  );
}
