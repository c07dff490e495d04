# The Lambda handler. Build from the repository's root:
#   docker build -f infra/deploy/handler.Dockerfile -t ade-drop-handler:local .
FROM public.ecr.aws/lambda/python:3.12
COPY requirements/runtime.txt requirements/runtime.txt
RUN pip install --no-cache-dir --require-hashes -r requirements/runtime.txt
COPY core ${LAMBDA_TASK_ROOT}/core
COPY infra ${LAMBDA_TASK_ROOT}/infra
COPY handlers ${LAMBDA_TASK_ROOT}/handlers
CMD ["handlers.aws_lambda.handler"]
