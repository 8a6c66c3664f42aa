# The image of the controller and of its Job ichor-cni: one static program and the pinned chart.
# Built where an engine is: docker build -t example.org/ichor:0.1.0 .
FROM rust:1.95.0-alpine3.22 AS build
RUN apk add --no-cache build-base
WORKDIR /source
COPY . .
# The chart comes from where charts/cilium.lock says, and its digest is checked.
RUN cargo build --locked --release --package ichor \
 && mkdir -p /image/charts \
 && cp target/release/ichor /image/ichor \
 && /image/ichor chart pull cilium --destination /image/charts

FROM scratch
COPY --from=build /image/ /
ENV ICHOR_CHART_DIR=/charts
USER 65532:65532
ENTRYPOINT ["/ichor"]
