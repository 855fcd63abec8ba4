import { Alert, Anchor } from "@mantine/core";

/** Above texts that are so long that a page shows their beginning only. */
export function ShownInPart({ whole, name }: { whole: string; name: string }) {
  return (
    <Alert color="gray" variant="light" p="xs" mb="sm">
      This is too long to be shown in full; here is its beginning.{" "}
      <Anchor href={whole} download={name} size="sm">
        Download all of it
      </Anchor>
    </Alert>
  );
}
