import { ActionIcon } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconStar, IconStarFilled } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { everything } from "../../api/client";
import { type Marked, marksQuery, setFavourite } from "../../api/marks";

interface Properties {
  project: string;
  type: Marked;
  item: string;
  name: string;
  on: boolean;
}

/** The caller's favourite, or not. */
export function Star({ project, type, item, name, on }: Properties) {
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: () => setFavourite(project, type, item, !on),
    onSuccess: () => client.invalidateQueries({ queryKey: everything(project) }),
    onError: (error) => notifications.show({ message: error.message, color: "red" }),
  });
  const shown = change.isPending ? !on : on;
  return (
    <ActionIcon
      variant="subtle"
      color={shown ? "yellow" : "gray"}
      size="sm"
      aria-label={`Favourite ${name}`}
      aria-pressed={shown}
      onClick={() => change.mutate()}
    >
      {shown ? <IconStarFilled size={16} /> : <IconStar size={16} />}
    </ActionIcon>
  );
}

/** The star in the heading of a thing's page. */
export function PageStar({ project, type, item, name }: Omit<Properties, "on">) {
  const marks = useQuery(marksQuery(project, type, item));
  return (
    marks.data && <Star project={project} type={type} item={item} name={name} on={marks.data.favourite} />
  );
}
