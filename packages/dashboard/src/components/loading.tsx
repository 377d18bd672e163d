import { checkConnection, useConnection } from "../http/connection.ts";
import { unreachable } from "../http/api.ts";
import { ErrorNotice } from "./error-notice.tsx";

/** Lines in place of the content. CSS shows them after a short delay, so fast responses do not flicker. */
export function Loading() {
  return (
    <div className="loading" role="status">
      <span className="visually-hidden">Loading…</span>
      <i />
      <i />
      <i />
    </div>
  );
}

const UNREACHABLE = unreachable();

/** In place of a part that is not loaded yet; see load-part.ts. */
export function PartLoading() {
  return useConnection() === "lost" ? (
    <ErrorNotice error={UNREACHABLE} onRetry={() => void checkConnection()} />
  ) : (
    <Loading />
  );
}
