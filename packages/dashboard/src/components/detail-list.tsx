import type { ReactNode } from "react";

/** A list of names and values. */
export function DetailList({
  items,
}: {
  readonly items: readonly (readonly [name: string, value: ReactNode])[];
}) {
  return (
    <dl className="detail-list">
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
