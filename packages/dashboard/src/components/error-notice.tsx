import { ApiError } from "../http/api.ts";
import { Button } from "./button.tsx";

/** What went wrong and what to do about it. */
export function ErrorNotice({ error, onRetry }: { readonly error: Error; readonly onRetry?: () => void }) {
  const advice = adviceFor(error);
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
  return error instanceof ApiError && error.status === 0
    ? "The server cannot be reached. It may be restarting."
    : error.message;
}

function adviceFor(error: Error): string | null {
  if (!(error instanceof ApiError))
    return "This is a defect of the page: reload it, and report what you did.";
  if (error.status === 0) return "Check that the service runs, then try again.";
  if (error.status === 403)
    return "Your token lacks the permission for this. Log in with one that has it, or with the root token.";
  if (error.status === 404) return "It may have been deleted meanwhile.";
  if (error.status === 412)
    return "Someone changed it since you loaded it: reload, then make your change again.";
  if (error.status === 503) return "The service is busy or stopping. Wait a moment, then try again.";
  if (error.status >= 500) return "The service's log has the cause under this request's id.";
  return null;
}
