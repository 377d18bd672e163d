/**
 * Calls, one line each: the whole row is the link. `j` and `k` go to the next and the previous row. The first click shows the call beside the list
 * where there is room for it, and opens its page elsewhere.
 */
import type { FoundCall } from "@signalbox/client";
import { type ReactNode, useEffect, useRef } from "react";
import { Badge } from "../../../components/badge.tsx";
import { Time } from "../../../components/time.tsx";
import { count, durationOf, moneyOf } from "../../../format/number.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccountPaths } from "../../../session/session.ts";
import { isTyping } from "../../../shell/use-shortcuts.ts";
import { parseMetadata } from "./call-metadata.ts";
import type { Call } from "./call.ts";
import { type LogColumn, OPTIONAL_COLUMNS } from "./log-columns.ts";

interface CallTableProps {
  readonly calls: readonly FoundCall[];
  readonly columns: ReadonlySet<LogColumn>;
  /** The id of the call that is shown beside the list. */
  readonly selected: string | null;
  /** Shows a call beside the list; false if its page is to be opened. */
  readonly onSelect: (call: FoundCall) => boolean;
}

interface Cell {
  readonly name: string;
  readonly title: string;
  readonly className?: string;
  readonly of: (call: FoundCall) => ReactNode;
}

export function CallTable({ calls, columns, selected, onSelect }: CallTableProps) {
  const { page } = useAccountPaths();
  const body = useRef<HTMLTableSectionElement>(null);
  useRowKeys(body);
  const cells = cellsOf(calls, columns);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls must be reachable by keyboard
    <div className="table-scroll log-scroll" tabIndex={0} role="region" aria-label="Calls">
      <table className="log-table">
        <thead>
          <tr>
            <th scope="col" className="log-time">
              Time
            </th>
            {cells.map(({ name, title, className = "" }) => (
              <th key={name} scope="col" className={`log-${name} ${className}`}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {calls.map((call) => (
            <tr key={call.id} className={call.id === selected ? "log-selected" : ""}>
              <td className="log-time">
                <Link
                  to={page("gateways", call.gateway_id, "logs", call.id)}
                  className="row-link"
                  aria-current={call.id === selected ? "true" : undefined}
                  onClick={(event) => {
                    const isPlain = !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
                    if (isPlain && event.button === 0 && onSelect(call)) event.preventDefault();
                  }}
                >
                  <Time at={call.created_at} as="clock" />
                </Link>
              </td>
              {cells.map(({ name, className = "", of }) => (
                <td key={name} className={`log-${name} ${className}`}>
                  {of(call)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function cellsOf(calls: readonly FoundCall[], columns: ReadonlySet<LogColumn>): Cell[] {
  const money = moneyOf(calls.map(({ cost }) => cost));
  const duration = durationOf(calls.map((call) => call.duration));
  const firstByte = durationOf(calls.map((call) => call.time_to_first_byte));
  const of: Readonly<Record<LogColumn, Omit<Cell, "name" | "title">>> = {
    gateway: { of: (call) => <span className="muted">{call.gateway_id}</span> },
    provider: { of: (call) => call.provider },
    answer: { of: (call) => <Preview text={call.answer} /> },
    user: { of: (call) => parseMetadata(call.metadata)["user"] ?? <None /> },
    metadata: { of: (call) => <Metadata call={call} /> },
    duration: { className: "align-end", of: (call) => duration(call.duration) },
    firstByte: { className: "align-end", of: (call) => firstByte(call.time_to_first_byte) },
    tokens: {
      className: "align-end",
      of: (call) => (
        <span title="Input → output tokens">
          {count(call.tokens_in)} → {count(call.tokens_out)}
        </span>
      ),
    },
    cost: { className: "align-end", of: (call) => money(call.cost) },
  };
  const optional = (...names: LogColumn[]): Cell[] =>
    OPTIONAL_COLUMNS.flatMap(([name, title]) =>
      names.includes(name) && columns.has(name) ? [{ name, title, ...of[name] }] : [],
    );
  return [
    { name: "status", title: "Status", of: (call) => <StatusBadge call={call} /> },
    ...optional("gateway", "provider"),
    { name: "model", title: "Model", of: (call) => (call.model === "" ? <None /> : call.model) },
    { name: "prompt", title: "Prompt", of: (call) => <Preview text={call.prompt} /> },
    ...optional("answer", "user", "metadata", "duration", "firstByte", "tokens", "cost"),
  ];
}

/** With the side panel open, the focus on another row shows its call: see `CallList`. */
function useRowKeys(body: { readonly current: HTMLElement | null }): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key !== "j" && event.key !== "k") return;
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]") !== null) return;
      const links = [...(body.current?.querySelectorAll<HTMLAnchorElement>(".row-link") ?? [])];
      const current = links.findIndex(
        (link) => link === document.activeElement || link.ariaCurrent === "true",
      );
      const next = links[current === -1 ? 0 : current + (event.key === "j" ? 1 : -1)];
      next?.focus();
      // The panel follows.
      if (links.some((link) => link.ariaCurrent === "true")) next?.click();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [body]);
}

function Preview({ text }: { readonly text: string | null }) {
  return text === null ? <None /> : <span title={text}>{text}</span>;
}

function None() {
  return <span className="muted">–</span>;
}

/** All but the user, which has a column of its own. */
function Metadata({ call }: { readonly call: Call }) {
  const { user: _, ...rest } = parseMetadata(call.metadata);
  const others = Object.entries(rest).map(([key, value]) => `${key}=${value}`);
  return others.length === 0 ? <None /> : <span title={others.join("\n")}>{others.join(" ")}</span>;
}

export function StatusBadge({ call }: { readonly call: Call }) {
  return (
    <span className="badges">
      <Badge tone={call.success ? "good" : "bad"}>{call.status_code}</Badge>
      {call.cached && <Badge tone="accent">cached</Badge>}
      {call.step > 0 && <Badge tone="warn">fallback {call.step}</Badge>}
    </span>
  );
}
