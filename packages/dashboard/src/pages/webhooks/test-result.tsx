import type { DeliveryStatus, SampleResult } from "@signalbox/client";
import { useEffect, useRef } from "react";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import { ErrorText } from "../agents/error-text.tsx";
import { describeReason } from "./delivery-status.ts";

const TITLES: Readonly<Record<DeliveryStatus, string>> = {
  accepted: "Accepted",
  duplicate: "Duplicate",
  rejected: "Rejected",
  failed: "Failed",
};

/** What became of a test event: the answer that a sender would get, why it failed, and where it went. */
export function TestResult({ result }: { readonly result: SampleResult }) {
  const { page } = useAccountPaths();
  const canReadAgents = useHasPermission("agents.read");
  const { status, outcome, reason, error, id, agent, instance, body } = result;
  const isGood = status < 300 && outcome !== "failed" && outcome !== "rejected";
  // The result may be below the end of a long form.
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    ref.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return (
    <div
      ref={ref}
      className={`notice ${isGood ? "notice-good" : "notice-bad"}`}
      role="status"
      data-testid="test-response"
    >
      <p>
        <strong>
          {outcome === null ? "Not accepted" : TITLES[outcome]}
          {reason === null ? "" : `: ${describeReason(reason)}`}.
        </strong>{" "}
        Response {status}.
      </p>
      {error !== null && <ErrorText message={`${error.name}: ${error.message}`} stack={error.stack} />}
      {!isGood && error === null && <code>{body}</code>}
      {outcome === "duplicate" && (
        <p>The payload has the id of an earlier delivery. Change the id to send a new event.</p>
      )}
      <p className="row">
        {id !== null && <Link to={page("webhooks", "deliveries", id)}>Open the delivery</Link>}
        {instance !== null &&
          agent !== null &&
          (canReadAgents ? (
            <Link to={page("agents", agent, instance)}>Open the instance {instance}</Link>
          ) : (
            <span>Instance {instance}</span>
          ))}
      </p>
    </div>
  );
}
