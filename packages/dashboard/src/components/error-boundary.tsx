import { Component, type ReactNode } from "react";
import { ErrorNotice } from "./error-notice.tsx";

interface ErrorBoundaryProps {
  readonly children: ReactNode;
  /** Of the page that is shown: another page is tried, whatever happened to this one. */
  readonly path: string;
}

/** Keeps the navigation usable when a page throws, or when the service does not have its file. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { readonly error: Error | null }> {
  override state: { readonly error: Error | null } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override componentDidUpdate(before: ErrorBoundaryProps): void {
    if (before.path !== this.props.path && this.state.error !== null) this.setState({ error: null });
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return <ErrorNotice error={error} onRetry={() => location.reload()} />;
  }
}
