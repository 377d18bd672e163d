import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import type { Finding } from "./findings.ts";

interface VerdictProps {
  /** Undefined while the first answers are outstanding. */
  readonly findings: readonly Finding[] | undefined;
  /** Parts that could not be read. */
  readonly unknown: readonly string[];
  /** Parts that are looked at. */
  readonly watched: readonly string[];
}

/** One line at the top: is anything wrong? */
export function Verdict({ findings, unknown, watched }: VerdictProps) {
  const { page } = useAccountPaths();
  if (findings === undefined) return <p className="verdict verdict-open">Checking…</p>;
  const tone = findings.some((finding) => finding.tone === "bad")
    ? "bad"
    : findings.length > 0 || unknown.length > 0
      ? "warn"
      : "good";
  return (
    <div className={`verdict verdict-${tone}`} role="status" data-testid="verdict">
      <strong>{titleOf(findings, unknown)}</strong>
      {findings.length > 0 && (
        <ul>
          {findings.map(({ text, to, query }) => (
            <li key={text}>
              {to.length === 0 ? (
                <a href="#limits">{text}</a>
              ) : (
                <Link to={page(...to) + (query === undefined ? "" : `?${query}`)}>{text}</Link>
              )}
            </li>
          ))}
        </ul>
      )}
      {findings.length === 0 && unknown.length === 0 && (
        <span className="muted">Watched: {watched.join(", ")}.</span>
      )}
      {unknown.length > 0 && <span>Not known: {unknown.join(", ")}.</span>}
    </div>
  );
}

function titleOf(findings: readonly Finding[], unknown: readonly string[]): string {
  if (findings.length === 0)
    return unknown.length === 0 ? "Nothing is wrong." : "Nothing is known to be wrong.";
  return findings.length === 1 ? "One thing needs attention:" : `${findings.length} things need attention:`;
}
