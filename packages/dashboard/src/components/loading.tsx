/** Quiet until it has taken a moment: a fast answer should not flash. */
export function Loading({ what = "Loading" }: { readonly what?: string }) {
  return (
    <p className="loading" role="status">
      {what}…
    </p>
  );
}
