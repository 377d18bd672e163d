import { PageHeader } from "../../components/page-header.tsx";
import { KeysView } from "./keys-view.tsx";

/** The provider keys of all gateways of the account. */
export function ProviderKeysPage() {
  return (
    <>
      <PageHeader title="Provider keys">
        Keys of AI providers, stored encrypted. Several keys of one provider are a pool: calls are spread by
        weight, and a key that the provider refuses is left out.
      </PageHeader>
      <KeysView />
    </>
  );
}
