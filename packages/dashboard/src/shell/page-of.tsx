/** From the address to the page. Each page is a chunk of its own, loaded when it is first opened. */
import { lazy, type ReactNode } from "react";
import { NotFoundPage } from "../pages/not-found-page.tsx";

const OverviewPage = lazy(async () => ({
  default: (await import("../pages/overview/overview-page.tsx")).OverviewPage,
}));
const TokensPage = lazy(async () => ({
  default: (await import("../pages/tokens/tokens-page.tsx")).TokensPage,
}));

export function PageOf({ page }: { readonly page: readonly string[] }): ReactNode {
  const [area = "", ...rest] = page;
  if (area === "" && rest.length === 0) return <OverviewPage />;
  if (area === "tokens" && rest.length === 0) return <TokensPage />;
  return <NotFoundPage />;
}
