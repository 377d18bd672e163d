import { isInlineImage, safeLink } from "./safe-address.ts";

/**
 * An image in a message. One that the message contains is shown; one at another host is a link, because loading it would tell that host
 * who reads the log.
 */
export function MessageImage({ address, text }: { readonly address: string; readonly text: string }) {
  if (isInlineImage(address))
    return <img className="message-image" src={address} alt={text === "" ? "Image" : text} />;
  const link = safeLink(address);
  if (link === null) return <span className="muted">[image{text === "" ? "" : `: ${text}`}]</span>;
  return (
    <a href={link} target="_blank" rel="noreferrer noopener" className="remote-image">
      Image{text === "" ? "" : `: ${text}`} (opens {new URL(link).host})
    </a>
  );
}
