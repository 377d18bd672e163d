import type { RejectedRequest } from "@signalbox/client";
import { CodeBlock } from "../../components/code-block.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { count } from "../../format/number.ts";

interface RejectedRequestPanelProps {
  readonly request: RejectedRequest;
  readonly source: string;
}

/** What is known of a request that was rejected: who sent it, and the received signature beside the expected one. */
export function RejectedRequestPanel({ request, source }: RejectedRequestPanelProps) {
  const { address, user_agent: userAgent, header_names: names, signature, expected } = request;
  return (
    <section className="panel wide-details" aria-labelledby="request-title">
      <h2 id="request-title">Request</h2>
      <p className="muted small">Nothing here is verified: anybody can have sent it.</p>
      <DetailList
        items={[
          ["Sender", address ?? "unknown"],
          ["User agent", userAgent ?? "none"],
          [
            "Signature received",
            signature === null ? (
              "none"
            ) : (
              <code key="received">
                {signature.header}: {signature.value}
              </code>
            ),
          ],
          ["Signature expected", <code key="expected">{expected}</code>],
        ]}
      />
      <h3>Header names</h3>
      <p>
        <code>{names.join(", ")}</code>
      </p>
      {request.body_preview !== null && (
        <>
          <h3>Beginning of the body</h3>
          <CodeBlock label="Beginning of the body" code={request.body_preview} />
        </>
      )}
      {request.also_rejected > 0 && (
        <p className="muted small">
          {count(request.also_rejected)} more deliveries of {source} were rejected before this one and are not
          listed.
        </p>
      )}
    </section>
  );
}
