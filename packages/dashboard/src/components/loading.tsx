/** CSS shows the text after a short delay, so fast responses do not flicker. */
export function Loading({ what = "Loading" }: { readonly what?: string }) {
  return (
    <p className="loading" role="status">
      {what}…
    </p>
  );
}
