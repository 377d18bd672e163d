/** Which file a path means, and where a browser should go instead: the `html_handling` of a worker's assets. */
import type { WranglerAssets } from "../settings/wrangler-file.ts";
import type { AssetFile, AssetFolder } from "./asset-folder.ts";

export type Page =
  | { readonly kind: "file"; readonly file: AssetFile }
  /** `path` is decoded. */
  | { readonly kind: "redirect"; readonly path: string }
  | { readonly kind: "none" };

const NONE: Page = { kind: "none" };

export async function findPage(
  folder: AssetFolder,
  path: string,
  handling: WranglerAssets["html_handling"],
): Promise<Page> {
  const serve = (file: AssetFile | null): Page => (file === null ? NONE : { kind: "file", file });
  if (handling === "none") return serve(await folder.find(path));
  const page = pageOf(path);
  if (page === null) return serve(await folder.find(path));
  const [plain, index] = await Promise.all([
    page === "" ? null : folder.find(`${page}.html`),
    folder.find(`${page}/index.html`),
  ]);
  // A file without an ending may have the name of a page.
  if (path === page && page !== "") {
    const exact = await folder.find(path);
    if (exact !== null) return serve(exact);
  }
  const file = (path.endsWith("/") ? (index ?? plain) : (plain ?? index)) ?? null;
  if (file === null) return NONE;
  const canonical = canonicalPath(page, file === index, handling);
  return canonical === path ? serve(file) : { kind: "redirect", path: canonical };
}

/** The page that a path could mean, without ending and slash; null if it is the path of another kind of file. */
function pageOf(path: string): string | null {
  if (path.endsWith("/")) return path.slice(0, -1);
  if (path.endsWith("/index.html")) return path.slice(0, -"/index.html".length);
  if (path.endsWith("/index")) return path.slice(0, -"/index".length);
  if (path.endsWith(".html")) return path.slice(0, -".html".length);
  return path;
}

function canonicalPath(page: string, isIndex: boolean, handling: WranglerAssets["html_handling"]): string {
  if (page === "") return "/";
  if (handling === "force-trailing-slash") return `${page}/`;
  if (handling === "drop-trailing-slash") return page;
  return isIndex ? `${page}/` : page;
}
