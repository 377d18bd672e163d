import type { ReactNode } from "react";

/** Shown in place of an empty list: what the list will contain and how to add the first entry. */
export function EmptyState({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div className="empty">
      <h3>{title}</h3>
      {children}
    </div>
  );
}
