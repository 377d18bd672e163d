import { Component, type ReactNode } from "react";
import { ErrorNotice } from "./error-notice.tsx";

/** Keeps the navigation usable when a page throws, or when its chunk no longer exists after an upgrade. */
export class ErrorBoundary extends Component<
  { readonly children: ReactNode },
  { readonly error: Error | null }
> {
  override state: { readonly error: Error | null } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return <ErrorNotice error={error} onRetry={() => location.reload()} />;
  }
}
