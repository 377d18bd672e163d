import type { ReactNode } from "react";
import type { Resource } from "../http/use-resource.ts";
import { ErrorNotice } from "./error-notice.tsx";
import { Loading } from "./loading.tsx";

/** Shows a resource's value as soon as there is one; a later failure is told above what was last known. */
export function ResourceView<T>({
  of,
  children,
}: {
  readonly of: Resource<T>;
  readonly children: (value: T) => ReactNode;
}) {
  return (
    <>
      {of.error !== null && <ErrorNotice error={of.error} onRetry={of.reload} />}
      {of.value === undefined ? of.error === null && <Loading /> : children(of.value)}
    </>
  );
}
