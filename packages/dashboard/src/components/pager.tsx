import { count as number } from "../format/number.ts";
import { Button } from "./button.tsx";

interface PagerProps {
  readonly page: number;
  readonly perPage: number;
  readonly total: number;
  readonly onChange: (page: number) => void;
}

export function Pager({ page, perPage, total, onChange }: PagerProps) {
  const pages = Math.max(1, Math.ceil(total / perPage));
  return (
    <nav className="row spread" aria-label="Pages">
      <span className="muted small">{number(total)} total</span>
      {pages > 1 && (
        <span className="row">
          <Button size="small" disabled={page <= 1} onClick={() => onChange(page - 1)}>
            Newer
          </Button>
          <span className="small">
            Page {page} of {pages}
          </span>
          <Button size="small" disabled={page >= pages} onClick={() => onChange(page + 1)}>
            Older
          </Button>
        </span>
      )}
    </nav>
  );
}
