import type { ReactNode } from "react";
import type { Resource } from "../http/use-resource.ts";
import { ErrorNotice } from "./error-notice.tsx";
import { Loading } from "./loading.tsx";

/** Shows the value of a resource once it is loaded. If a later refresh fails, the error appears above the last value. */
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
