import { Dialog } from "../../components/dialog.tsx";
import { useScope } from "../../session/session.ts";
import { DESTINATIONS, isAllowed } from "../destinations.ts";

export function ShortcutsDialog({ onClose }: { readonly onClose: () => void }) {
  const { session } = useScope();
  const pages = DESTINATIONS.filter((page) => page.key !== undefined && isAllowed(page, session));
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="shortcuts">
        <Keys keys={["Ctrl", "K"]} text="Command palette (on a Mac: ⌘ K)" />
        <Keys keys={["/"]} text="Search on this page" />
        <Keys keys={["?"]} text="This list" />
        <Keys keys={["j", "k"]} text="Next and previous call in the logs" />
        <Keys keys={["Esc"]} text="Close a dialog" />
        {pages.map(({ title, key = "" }) => (
          <Keys key={title} keys={["g", key]} text={title} />
        ))}
      </dl>
      <p className="muted small">
        Charts: the arrow keys move between times, Home and End to the first and last one. With Shift they
        select a range. Enter opens what happened then, or shows the range.
      </p>
    </Dialog>
  );
}

function Keys({ keys, text }: { readonly keys: readonly string[]; readonly text: string }) {
  return (
    <div>
      <dt>
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{text}</dd>
    </div>
  );
}
