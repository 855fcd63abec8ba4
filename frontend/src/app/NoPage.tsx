import { Anchor, Box } from "@mantine/core";
import { useParams } from "@tanstack/react-router";
import { Empty } from "../shared/Feedback";
import { Page } from "../shared/Page";

/** An address that leads nowhere, inside the frame of a project or outside of any. */
export function NoPage() {
  const { project } = useParams({ strict: false });
  return (
    <Box component="section" p={project ? 0 : "xl"}>
      <Page title="No such page">
        <Empty title="There is nothing at this address">
          It may be mistyped, or from a newer version of Steerboard.{" "}
          <Anchor href="/" underline="always">
            Go to your project
          </Anchor>
        </Empty>
      </Page>
    </Box>
  );
}
