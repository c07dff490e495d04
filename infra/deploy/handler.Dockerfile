# The Lambda handler. Build from the repository's root:
#   docker build -f infra/deploy/handler.Dockerfile -t ade-drop-handler:local .
# By digest: --build-arg BASE=public.ecr.aws/lambda/python:3.12@sha256:…
ARG BASE=public.ecr.aws/lambda/python:3.12
FROM ${BASE}
COPY infra/deploy/handler.txt /tmp/requirements.txt
RUN pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.txt
COPY core ${LAMBDA_TASK_ROOT}/core
COPY infra ${LAMBDA_TASK_ROOT}/infra
COPY handlers ${LAMBDA_TASK_ROOT}/handlers
COPY runner/__init__.py ${LAMBDA_TASK_ROOT}/runner/__init__.py
COPY runner/engine/__init__.py ${LAMBDA_TASK_ROOT}/runner/engine/__init__.py
COPY runner/engine/expressions ${LAMBDA_TASK_ROOT}/runner/engine/expressions
# No USER: Lambda runs every image as an unprivileged user of its own choice.
CMD ["handlers.sources.aws_lambda.handler"]
