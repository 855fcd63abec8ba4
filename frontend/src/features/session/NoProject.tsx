import { Center } from "@mantine/core";
import { Empty } from "../../shared/Feedback";

export function NoProject() {
  return (
    <Center mih="100vh" component="main">
      <Empty title="No project yet">
        You are signed in, but not a member of any project. Ask an owner to add you.
      </Empty>
    </Center>
  );
}
