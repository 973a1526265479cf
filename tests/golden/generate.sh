#!/bin/sh
# Writes vectors-VERSION.tsv for each version of Apache RocketMQ; needs a JDK and Maven. See README.md.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work="$here/../../target/golden"

generate() {
    version=$1 protocol=$2
    jars="$work/$version" classes="$work/classes-$version" sources="$work/sources-$version"
    mkdir -p "$jars" "$classes" "$sources"
    mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies \
        -Drocketmq.version="$version" -DoutputDirectory="$jars"
    sed "s/@PROTOCOL@/$protocol/" "$here/GoldenVectors.java" > "$sources/GoldenVectors.java"
    javac -nowarn -cp "$jars/*" -d "$classes" "$sources/GoldenVectors.java"
    java -cp "$classes:$jars/*" GoldenVectors > "$work/vectors-$version.tsv"
    mv "$work/vectors-$version.tsv" "$here/vectors-$version.tsv"
}

generate 5.5.0 org.apache.rocketmq.remoting.protocol
generate 4.9.7 org.apache.rocketmq.common.protocol
