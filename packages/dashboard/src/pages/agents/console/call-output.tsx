import { CodeBlock } from "../../../components/code-block.tsx";
import { duration } from "../../../format/number.ts";

/** What a call has returned so far: one result, or the pieces of a stream with the time at which each arrived. */
export interface CallOutput {
  readonly pieces: readonly { readonly atMs: number; readonly text: string }[];
  readonly isStream: boolean;
  /** Null while the call runs. */
  readonly tookMs: number | null;
}

/** Elements in the page; a stream may have a million pieces. */
const MAX_PIECES = 500;

export function CallOutputView({ output }: { readonly output: CallOutput }) {
  const { pieces, isStream, tookMs } = output;
  const shown = pieces.slice(-MAX_PIECES);
  return (
    <>
      {pieces.length > 0 && (
        <div role="status" data-testid="call-result">
          {isStream ? (
            <ol className="pieces" aria-label="Result">
              {shown.map(({ atMs, text }, i) => (
                // oxlint-disable-next-line react/no-array-index-key -- pieces are only appended
                <li key={pieces.length - shown.length + i}>
                  <span className="muted">+{duration(atMs)}</span> <code>{text}</code>
                </li>
              ))}
            </ol>
          ) : (
            <CodeBlock label="Result" code={pieces[0]?.text ?? ""} />
          )}
        </div>
      )}
      {tookMs === null ? (
        isStream && <p className="muted small">{pieces.length} pieces so far…</p>
      ) : (
        <p className="muted small">
          {pieces.length === 0 && "No result, "}
          {isStream && pieces.length > 0 && `${pieces.length} pieces, `}
          {duration(tookMs)}
        </p>
      )}
    </>
  );
}
