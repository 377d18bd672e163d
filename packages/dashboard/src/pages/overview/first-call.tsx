import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { useAction } from "../../http/use-action.ts";
import { useScope, useTrafficOrigin } from "../../session/session.ts";
import { compatUrl } from "../playground/playground-snippets.ts";
import { runCall } from "../playground/run-call.ts";

const GATEWAY = "default";

/** Sends the first call from here, as the playground would: to the provider that answers with the request, which needs no key. */
export function FirstCall({ onSent }: { readonly onSent: () => void }) {
  const { accountId } = useScope();
  const origin = useTrafficOrigin();
  const [isSent, setSent] = useState(false);
  const send = useAction(async () => {
    const body = { model: "echo/echo", messages: [{ role: "user", content: "Hello" }] };
    const url = `${compatUrl({ origin, accountId, gatewayId: GATEWAY })}/chat/completions`;
    const call = { url, body, headers: {}, token: "", providerKey: "" };
    const { error } = await runCall(call, new AbortController().signal, () => undefined);
    if (error !== null) throw new Error(error);
    setSent(true);
    onSent();
  });
  // Another origin, which this page may not call.
  if (origin !== location.origin) return null;
  return (
    <div className="row">
      <Button isBusy={send.isBusy} onClick={() => void send.run()}>
        Send it from here
      </Button>
      <span className="muted small" role="status">
        {isSent ? "Sent. The chart below counts it in a moment." : ""}
      </span>
      {send.error !== null && <ErrorNotice error={send.error} />}
    </div>
  );
}
