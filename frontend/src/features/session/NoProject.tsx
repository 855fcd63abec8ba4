import { Center } from "@mantine/core";
import { Empty } from "../../shared/Feedback";

export function NoProject() {
  return (
    <Center mih="100vh" component="main">
      <Empty title="No project yet">
        You are signed in, and no project has you as a member. Ask an owner to add you.
      </Empty>
    </Center>
  );
}
