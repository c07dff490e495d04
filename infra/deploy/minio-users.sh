#!/bin/sh
# Makes the user that the services of docker-compose.yml work as: it changes objects of the bucket, and nothing else.
# Run again, it changes nothing. Only mc and what the shell itself can do: the image has little else.
set -eu
place="\${BUCKET}"
mc alias set root http://minio:9000 "$MINIO_ROOT_USER" "$MINIO_ROOT_PASSWORD"
while IFS= read -r line; do
  while [ "$line" != "${line#*"$place"}" ]; do
    line="${line%%"$place"*}drops${line#*"$place"}"
  done
  printf '%s\n' "$line"
done < "${POLICIES:-/policies}/operator-minio.json" > "$MC_CONFIG_DIR/policy.json"
mc admin policy create root ade-services "$MC_CONFIG_DIR/policy.json"
mc admin user add root "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY"
mc admin policy attach root ade-services --user "$AWS_ACCESS_KEY_ID"
