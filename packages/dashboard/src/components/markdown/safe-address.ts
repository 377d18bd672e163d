/** Addresses in texts of models and senders, which can be anything. */

/** The address of a link; null for schemes that run code or do not name a page, such as `javascript:`. */
export function safeLink(address: string): string | null {
  try {
    const { protocol, href } = new URL(address);
    return ["http:", "https:", "mailto:"].includes(protocol) ? href : null;
  } catch {
    return null;
  }
}

const INLINE_IMAGE = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[\w+/=\s]+$/;

/** Whether the address contains a bitmap itself, so that showing it sends no request. SVG is left out: it can refer to other files. */
export function isInlineImage(address: string): boolean {
  return INLINE_IMAGE.test(address);
}
