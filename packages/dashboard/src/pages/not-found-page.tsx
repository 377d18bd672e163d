import { PageHeader } from "../components/page-header.tsx";
import { Link } from "../routing/link.tsx";
import { useAccountPaths } from "../session/session.ts";

export function NotFoundPage() {
  const { page } = useAccountPaths();
  return (
    <>
      <PageHeader title="Page not found">There is no page at this URL.</PageHeader>
      <p>
        <Link to={page()}>Go to the overview</Link>
      </p>
    </>
  );
}
