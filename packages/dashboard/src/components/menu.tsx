/** A button that opens a small panel below it: the browser closes it by Escape and by a click elsewhere, and returns the focus. */
import { type ReactNode, useId, useRef } from "react";

interface MenuProps {
  /** Text of the button. */
  readonly label: string;
  /** The name of the panel. Default: the label. */
  readonly title?: string;
  readonly children: ReactNode;
}

const GAP = 4;
const EDGE = 12;

export function Menu({ label, title = label, children }: MenuProps) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  // The top layer has no place of its own; positions by CSS anchors are not in every browser yet.
  const place = () => {
    if (button.current === null || panel.current === null) return;
    const { left, bottom } = button.current.getBoundingClientRect();
    const most = document.documentElement.clientWidth - panel.current.offsetWidth - EDGE;
    panel.current.style.left = `${Math.max(EDGE, Math.min(left, most)) + scrollX}px`;
    panel.current.style.top = `${bottom + GAP + scrollY}px`;
  };
  return (
    <>
      <button ref={button} type="button" className="button button-small" popoverTarget={id}>
        {label}
      </button>
      <div
        ref={panel}
        id={id}
        popover="auto"
        className="menu"
        role="group"
        aria-label={title}
        onToggle={(event) => event.newState === "open" && place()}
      >
        {children}
      </div>
    </>
  );
}
