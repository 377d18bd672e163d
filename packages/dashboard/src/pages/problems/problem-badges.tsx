import type { Instance } from "@signalbox/client";
import { Badge } from "../../components/badge.tsx";
import { Elapsed } from "../../components/elapsed.tsx";
import { Time } from "../../components/time.tsx";
import { count } from "../../format/number.ts";

/** A turn that runs longer is shown as a problem; the same as the default of the service. */
const STUCK_MS = 10_000;

/** The problems of an instance. */
export function ProblemBadges({ instance }: { readonly instance: Instance }) {
  const { busy_since: busySince, dead_letters: deadLetters, retrying, last_error_at: errorAt } = instance;
  const isStuck = busySince != null && Date.now() - Date.parse(busySince) > STUCK_MS;
  return (
    <span className="badges">
      {isStuck && (
        <Badge tone="bad">
          stuck for <Elapsed since={busySince} />
        </Badge>
      )}
      {deadLetters > 0 && (
        <Badge tone="bad">
          {count(deadLetters)} dead {deadLetters === 1 ? "letter" : "letters"}
        </Badge>
      )}
      {retrying > 0 && <Badge tone="warn">{count(retrying)} retrying</Badge>}
      {deadLetters === 0 && retrying === 0 && !isStuck && errorAt != null && (
        <Badge tone="warn">
          error <Time at={errorAt} />
        </Badge>
      )}
    </span>
  );
}
