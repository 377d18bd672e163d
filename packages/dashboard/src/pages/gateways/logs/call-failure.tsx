import { useResource } from "../../../http/use-resource.ts";
import { readBody } from "./body-panel.tsx";
import type { Call } from "./call.ts";
import { errorMessage } from "./message-parts.ts";

/** Why a call failed, in the words of the provider or of the gateway: a limit, for example, refuses a call before it is sent. */
export function CallFailure({ path, call }: { readonly path: string; readonly call: Call }) {
  const body = useResource(`${path}/response`, (signal) => readBody(`${path}/response`, signal));
  const message = body.value == null ? null : errorMessage(body.value.text);
  return (
    <div className="notice notice-bad" role="status">
      <p>
        <strong>
          The call to {call.provider} failed with status {call.status_code}
        </strong>
        {message !== null && `: ${message}`}
      </p>
    </div>
  );
}
