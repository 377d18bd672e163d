import { ApiError } from "../http/api.ts";
import { PartMissingError } from "../http/load-part.ts";
import { Button } from "./button.tsx";

/** Shows an error and what to do about it. `onRetry` is for what the dashboard reads again by itself, too. */
export function ErrorNotice({ error, onRetry }: { readonly error: Error; readonly onRetry?: () => void }) {
  const advice = adviceFor(error, onRetry !== undefined);
  return (
    <div className="notice notice-bad" role="alert">
      <p>
        <strong>{titleOf(error)}</strong>
        {error instanceof ApiError && error.code !== 0 && <span className="muted"> (code {error.code})</span>}
      </p>
      {advice !== null && <p>{advice}</p>}
      {onRetry !== undefined && (
        <Button size="small" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

function titleOf(error: Error): string {
  return isUnreachable(error) ? "The server cannot be reached. It may be restarting." : error.message;
}

/** No answer, or that of a proxy: the service's own errors have a code. */
function isUnreachable(error: Error): boolean {
  if (!(error instanceof ApiError) || error.code !== 0) return false;
  return error.status === 0 || (error.status >= 502 && error.status <= 504);
}

function adviceFor(error: Error, isRead: boolean): string | null {
  if (error instanceof PartMissingError)
    return "It may have been upgraded a moment ago. Try again; if the error persists, install and restart the service again.";
  if (!(error instanceof ApiError))
    return "This is a bug in the dashboard. Reload the page; if the error persists, report it.";
  if (isUnreachable(error))
    return isRead
      ? "The dashboard tries again by itself and goes on when the server is back."
      : "The server may or may not have received the request. Try again when it is back.";
  if (error.status === 403)
    return "Your token does not have the required permission. Log in with a token that has it, or with the root token.";
  if (error.status === 404) return "It may have been deleted.";
  if (error.status === 412)
    return "It was changed by someone else after you opened it. Reload the page and make your change again.";
  if (error.status === 503)
    return "The service is overloaded or shutting down. Wait a moment, then try again.";
  if (error.status >= 500) return "See the service's log for the cause.";
  return null;
}
