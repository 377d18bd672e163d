import type { AnchorHTMLAttributes, MouseEvent } from "react";
import { hrefOf, navigate } from "./location.ts";

interface LinkProps extends AnchorHTMLAttributes<HTMLAnchorElement> {
  /** Path below `/dashboard`. */
  readonly to: string;
}

/** A link that navigates without reloading the page. Clicks with a modifier key keep their default action. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const isPlain =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !isPlain) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={hrefOf(to)} onClick={follow} {...rest} />;
}
